//go:build !race

package main_test

// raceDetector says whether the program is built with the race detector, as the
// tests are.
const raceDetector = false
