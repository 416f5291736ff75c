//go:build race

package main_test

// raceDetector says whether the program is built with the race detector, as the
// tests are.
const raceDetector = true

// raceShare is by how much tests do less of what they do often: the detector makes the
// program several times slower, and finds what it finds in fewer rounds.
const raceShare = 5
