//go:build !unix

package keyring

func keepOwner(_, _ string) error { return nil }
