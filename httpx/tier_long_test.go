//go:build long

package httpx_test

// stores is how many of the backends the function everywhere runs a test on.
const stores = 3
