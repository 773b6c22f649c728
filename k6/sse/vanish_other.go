//go:build !linux

package sse

import "errors"

func canVanish() error {
	return errors.New("streams can vanish on Linux only: elsewhere the kernel acknowledges whatever comes")
}
