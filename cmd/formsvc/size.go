package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a number of bytes on the command line: 100MB, 1.5GB, 64MiB, 4096.
type byteSize int64

// units are powers of ten, as in the specification's "1 MB", or with an i of two.
func units(suffix string) (float64, bool) {
	switch strings.ToUpper(suffix) {
	case "", "B":
		return 1, true
	case "K", "KB":
		return 1e3, true
	case "M", "MB":
		return 1e6, true
	case "G", "GB":
		return 1e9, true
	case "T", "TB":
		return 1e12, true
	case "KIB":
		return 1 << 10, true
	case "MIB":
		return 1 << 20, true
	case "GIB":
		return 1 << 30, true
	case "TIB":
		return 1 << 40, true
	}
	return 0, false
}

// UnmarshalText reads a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	end := strings.LastIndexAny(s, "0123456789") + 1
	unit, ok := units(strings.TrimSpace(s[end:]))
	n, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || !ok || strings.ContainsAny(s[:end], "eExXpP_+-") {
		return fmt.Errorf("%q is not a size such as 100MB, 1.5GB or 64MiB", s)
	}
	if n *= unit; n < 1 || n > math.MaxInt64/2 {
		return fmt.Errorf("%q is out of range", s)
	}
	*b = byteSize(n)
	return nil
}
