//go:build race

package main_test

// raceDetector reports whether the program and the tests are built with the race detector.
const raceDetector = true

// raceShare divides the number of rounds of tests: the detector makes the program several times slower, and finds races in
// fewer rounds.
const raceShare = 5
