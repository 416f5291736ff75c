package main

import (
	"testing"

	"github.com/formsvc/toolkit/examples/receivers/internal/receivertest"
)

func TestReceiver(t *testing.T) { receivertest.Run(t, newHandler) }
