//go:build !linux

package main

import (
	"context"
	"errors"
)

func holdEpoll(context.Context, holdOptions) (holdResult, error) {
	return holdResult{}, errors.New("the epoll client needs Linux")
}
