package digest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/digest"
	"github.com/formsvc/toolkit/storage/memory"
)

// A console prints mails in place of sending them.
type console struct{}

func (console) Send(_ context.Context, to, subject, _ string) error {
	fmt.Println("to", to, "-", subject)
	return nil
}

func ExampleNew() {
	svc, err := formsvc.New(memory.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	d := digest.New(svc.Notices, console{}, nil)
	d.Wake() // as delivery.Options.OnFailure does
	fmt.Println(d.Run(ctx))
	// Output: <nil>
}

// A mail names only the host of a webhook.
func ExampleCompose() {
	subject, _ := digest.Compose(&formsvc.Digest{URL: "https://hooks.example.com/secret-path", Failures: 3})
	fmt.Println(subject)
	// Output: 3 deliveries to hooks.example.com failed
}
