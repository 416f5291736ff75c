//go:build long

package storagetest

// randomSeed is whether each run has other histories.
const randomSeed = true
