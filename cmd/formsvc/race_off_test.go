//go:build !race

package main_test

// raceDetector says whether the program is built with the race detector, as the
// tests are.
const raceDetector = false

// raceShare is by how much tests do less of what they do often under the race detector.
const raceShare = 1
