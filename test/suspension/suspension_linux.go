// Package suspension simulates the suspension of a machine: the processes of a program stop, and their CLOCK_BOOTTIME
// continues.
package suspension

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// suspendable is the first argument of a process that prepares a Clock, and then executes the program in its other
// arguments.
const suspendable = "suspendable"

// A Clock uses seccomp_unotify(2) to handle calls to clock_gettime(CLOCK_BOOTTIME) by a program and its children. After
// a suspension, the clock is ahead of CLOCK_MONOTONIC. All other calls go to the kernel.
type Clock struct {
	listener  *os.File
	suspended atomic.Int64 // total time of suspensions in nanoseconds
}

// Main must be the first call in main or TestMain of a program that calls Start. It does not return in the process
// that Start starts.
func Main() {
	if len(os.Args) > 2 && os.Args[1] == suspendable {
		fmt.Fprintln(os.Stderr, execSuspendable(os.Args[2:]))
		os.Exit(2)
	}
}

// Start starts a program with a Clock.
func Start(cmd *exec.Cmd) (*Clock, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	parentEnd, childEnd := os.NewFile(uintptr(ends[0]), "listener"), os.NewFile(uintptr(ends[1]), "listener")
	defer parentEnd.Close()
	cmd.Path, cmd.Args, cmd.ExtraFiles = executable, append([]string{executable, suspendable, cmd.Path}, cmd.Args[1:]...), []*os.File{childEnd}
	err = cmd.Start()
	_ = childEnd.Close()
	if err != nil {
		return nil, err
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(ends[0], make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("start %s: no listener from the process: %w", cmd.Args[2], cmp.Or(err, io.EOF))
	}
	c := &Clock{listener: os.NewFile(uintptr(*(*int32)(unsafe.Pointer(&rights[unix.CmsgLen(0)]))), "seccomp")}
	go c.handleCalls()
	return c, nil
}

// Suspend stops processes for a duration, or until ctx ends. Their CLOCK_BOOTTIME is then ahead by d.
func (c *Clock) Suspend(ctx context.Context, pids []int, d time.Duration) {
	Stop(ctx, pids, d, func() { c.suspended.Add(int64(d)) })
}

// Stop stops processes for a duration, or until ctx ends. It calls wake before they continue.
func Stop(ctx context.Context, pids []int, d time.Duration, wake func()) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	wake()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

func (c *Clock) handleCalls() {
	defer c.listener.Close()
	fd := int(c.listener.Fd())
	for {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(events, -1); err == unix.EINTR {
			continue
		}
		if events[0].Revents&unix.POLLIN == 0 {
			return
		}
		var call struct { // seccomp_notif
			ID         uint64
			PID, Flags uint32
			Nr         int32
			Arch       uint32
			IP         uint64
			Args       [6]uint64
		}
		if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)) != 0 {
			continue // the calling process has ended
		}
		answer := struct { // seccomp_notif_resp
			ID    uint64
			Value int64
			Error int32
			Flags uint32
		}{ID: call.ID}
		if c.write(call.PID, int64(call.Args[1])) != nil {
			answer.Error = -int32(unix.EFAULT)
		}
		ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
	}
}

func (c *Clock) write(pid uint32, address int64) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return err
	}
	now = unix.NsecToTimespec(now.Nano() + c.suspended.Load())
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	_, err = memory.WriteAt(unsafe.Slice((*byte)(unsafe.Pointer(&now)), unsafe.Sizeof(now)), address)
	return err
}

func ioctl(fd int, request uintptr, to unsafe.Pointer) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(to))
	return errno
}

// execSuspendable replaces this process with a program, so it returns only after an error. It sends the listener for
// calls of clock_gettime(CLOCK_BOOTTIME) over the socket at descriptor 3.
func execSuspendable(args []string) error {
	runtime.LockOSThread() // the filter applies only to this thread; exec keeps the filter and ends the other threads
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLOCK_GETTIME, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // seccomp_data.args[0]
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.CLOCK_BOOTTIME, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return err
	}
	_ = unix.Close(3)
	return unix.Exec(args[0], args, os.Environ())
}
