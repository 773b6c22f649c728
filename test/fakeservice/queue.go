package fakeservice

import (
	"errors"
	"slices"
	"time"
)

type block struct {
	due   time.Time
	write func(due time.Time) error
}

// Queue adds a block. The stream calls write when the block is due, and ends if write returns an error: ErrOver if the
// service ends the stream, any other error if the client has closed the stream. Blocks that are queued with inOrder do
// not overtake each other.
func (s *Stream) Queue(due time.Time, inOrder bool, write func(due time.Time) error) {
	s.queue.Lock()
	if inOrder {
		if due.Before(s.lastDue) {
			due = s.lastDue
		}
		s.lastDue = due
	}
	s.blocks = append(s.blocks, block{due, write})
	slices.SortStableFunc(s.blocks, func(a, b block) int { return a.due.Compare(b.due) })
	s.queue.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Repeat calls write repeatedly. pause returns the time until the next call.
func (s *Stream) Repeat(pause func() time.Duration, write func() error) {
	s.Queue(time.Now().Add(pause()), false, func(time.Time) error {
		err := write()
		s.Repeat(pause, write)
		return err
	})
}

// Run writes queued blocks until the stream ends, and returns the reason, such as EndClient.
func (s *Stream) Run() (end string) {
	for {
		due := s.nextDue()
		ended, err := s.Wait(earliest(due, s.EndAt), s.Ended)
		now := time.Now()
		switch {
		case err != nil:
			return EndClient
		case ended:
			_ = s.pause(now.Add(s.EndDelay))
			return s.EndReason
		case !s.EndAt.IsZero() && !now.Before(s.EndAt):
			return EndInOrder
		case !due.IsZero() && !now.Before(due):
			b := s.dequeue()
			if err := b.write(b.due); errors.Is(err, ErrOver) {
				return EndInOrder
			} else if err != nil {
				return EndClient
			}
		}
	}
}

// pause waits until a time. It returns an error if the stream is over earlier.
func (s *Stream) pause(until time.Time) (err error) {
	for err == nil && time.Now().Before(until) {
		_, err = s.Wait(until, nil)
	}
	return err
}

func (s *Stream) nextDue() (due time.Time) {
	s.queue.Lock()
	defer s.queue.Unlock()
	if len(s.blocks) > 0 {
		due = s.blocks[0].due
	}
	return due
}

func (s *Stream) dequeue() block {
	s.queue.Lock()
	defer s.queue.Unlock()
	b := s.blocks[0]
	s.blocks = s.blocks[1:]
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
