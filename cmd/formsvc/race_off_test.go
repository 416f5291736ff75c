//go:build !race

package main_test

// raceDetector reports whether the program and the tests are built with the race detector.
const raceDetector = false
