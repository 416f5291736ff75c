package files

import (
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"
)

func TestMain(m *testing.M) { benchtest.Main(m) }
