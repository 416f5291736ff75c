package digest_test

import (
	"fmt"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
)

// A mail names only the host of a webhook.
func ExampleCompose() {
	subject, _ := digest.Compose(&formsvc.Digest{URL: "https://hooks.example.com/secret-path", Failures: 3})
	fmt.Println(subject)
	// Output: 3 deliveries to hooks.example.com failed
}
