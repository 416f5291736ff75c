package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/formsvc/toolkit/webhook"
)

type signCmd struct {
	Secret string `required:"" help:"The webhook's secret."`
}

// Run prints the signature of standard input.
func (c *signCmd) Run(std streams) error {
	body, err := io.ReadAll(std.in)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, webhook.Sign(c.Secret, body))
	return err
}

type verifyCmd struct {
	Secret    string `required:"" help:"The webhook's secret."`
	Signature string `required:"" help:"The value of the x-service-signature header."`
}

// Run checks the signature of standard input.
func (c *verifyCmd) Run(std streams) error {
	v, err := webhook.NewVerifier([]string{c.Secret}, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(std.in)
	if err != nil {
		return err
	}
	header := make(http.Header)
	header.Set(webhook.SignatureHeader, c.Signature)
	if _, err := v.Verify(body, header); err != nil {
		std.note("The signature is invalid: %v", err)
		return errSilent
	}
	std.note("The signature is valid.")
	return nil
}
