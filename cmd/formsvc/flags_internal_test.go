package main

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "1d12h": 36 * time.Hour, "90m": 90 * time.Minute, "0d1s": time.Second, "106750d": 106750 * day, "1.5h": 90 * time.Minute,
		"": 0, "d": 0, "0d": 0, "0s": 0, "0": 0, "-1d": 0, "-1h": 0, "1d-1h": 0, "1d1d": 0, "1.5d": 0, "30": 0, "1h1d": 0, "106752d": 0,
		"106751d48h": 0, "9999999999d": 0, "99999999999999999999d": 0, " 1d": 0, "+1d": 0,
	} {
		var s span
		err := s.UnmarshalText([]byte(text))
		if (err == nil) != (want > 0) || time.Duration(s) != want {
			t.Errorf("%q is %v (%v), want %v", text, time.Duration(s), err, want)
		}
	}
}
