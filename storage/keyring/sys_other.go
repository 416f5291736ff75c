//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package keyring

import (
	"errors"
	"io/fs"
	"os"
)

func flock(*os.File) error { return errors.ErrUnsupported }

func keepOwner(*os.File, fs.FileInfo) error { return nil }
