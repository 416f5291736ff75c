package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// A span is a duration on the command line: as in Go, such as 90m, or with days in front, such as 30d or 1d12h.
type span time.Duration

const day = 24 * time.Hour

// UnmarshalText reads a span, which must be positive.
func (s *span) UnmarshalText(text []byte) error {
	bad := fmt.Errorf("%q is not a duration such as 30d, 1d12h or 90m", text)
	days, rest, found := strings.Cut(string(text), "d")
	if !found {
		days, rest = "0", days
	}
	n, err := strconv.ParseUint(days, 10, 31)
	if err != nil {
		return bad
	}
	var d time.Duration
	if rest != "" || !found {
		if d, err = time.ParseDuration(rest); err != nil {
			return bad
		}
	}
	if d < 0 || n > uint64(math.MaxInt64/day)-1 || d > day*time.Duration(math.MaxInt64/day)-time.Duration(n)*day {
		return fmt.Errorf("%q is out of range", text)
	}
	if d += time.Duration(n) * day; d == 0 {
		return fmt.Errorf("%q is out of range", text)
	}
	*s = span(d)
	return nil
}

// byteSize is a number of bytes on the command line: 100MB, 1.5GB, 64MiB, 4096.
type byteSize int64

// UnmarshalText reads a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a size such as 100MB, 1.5GB or 64MiB", text)
	}
	if n < 1 || n > math.MaxInt64/2 {
		return fmt.Errorf("%q is out of range", text)
	}
	*b = byteSize(n)
	return nil
}
