//go:build !linux

package main

import (
	"context"
	"errors"
)

func holdEpoll(context.Context, rawOptions) (rawResult, error) {
	return rawResult{}, errors.New("the epoll client needs Linux")
}
