//go:build !linux

package main

import (
	"context"
	"errors"
)

// holdEpoll returns an error, because epoll exists only on Linux.
func holdEpoll(context.Context, holdOptions) (holdResult, error) {
	return holdResult{}, errors.New("the epoll client needs Linux")
}
