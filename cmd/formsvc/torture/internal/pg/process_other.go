//go:build !linux

package pg

import (
	"syscall"
	"testing"
)

// An account runs the programs. Other than on Linux it is always the user who runs the test.
type account struct{}

func findAccount(testing.TB) *account { return nil }

func (*account) own(string) error { return nil }

func (*account) attributes() *syscall.SysProcAttr { return nil }

func detached() *syscall.SysProcAttr { return nil }

// processesIn finds none: the processes of a server end by themselves soon after the
// first.
func processesIn(string) []int { return nil }

func removeSegment(int) {}
