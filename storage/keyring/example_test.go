package keyring_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/formsvc/toolkit/storage/keyring"
)

// Seal the secret of a webhook, and replace the key while the process runs.
func Example() {
	dir, err := os.MkdirTemp("", "keyring-example-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "keys")

	ring, err := keyring.OpenFile(path) // creates the file
	if err != nil {
		panic(err)
	}
	stored := ring.Seal("whsec_0123", "webhooks", "secret", "row 1")
	_, err = ring.Open(stored, "webhooks", "secret", "row 2")
	fmt.Println("in another row:", err != nil)

	// In another process, while this one runs:
	renewed, err := keyring.AddKey(path)
	if err != nil {
		panic(err)
	}
	secret, err := renewed.Open(stored, "webhooks", "secret", "row 1")
	if err != nil {
		panic(err)
	}
	stored = renewed.Seal(secret, "webhooks", "secret", "row 1")
	if _, err := keyring.RemoveKeys(path, renewed.Primary()); err != nil {
		panic(err)
	}

	// This process meets the new key, and reads the file once more.
	secret, err = ring.Open(stored, "webhooks", "secret", "row 1")
	fmt.Println(secret, err, len(ring.IDs()))
	// Output:
	// in another row: true
	// whsec_0123 <nil> 1
}

// Read keys from the environment; without them values are plain text.
func ExampleParse() {
	var ring *keyring.Keyring // stores plain text
	if text := os.Getenv("EXAMPLE_KEYS"); text != "" {
		var err error
		if ring, err = keyring.Parse(text); err != nil {
			panic(err)
		}
	}
	fmt.Println(ring.Seal("whsec_0123", "webhooks", "secret", "row 1"))
	// Output: p1.whsec_0123
}
