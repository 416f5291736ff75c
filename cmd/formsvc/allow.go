package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/formsvc/toolkit/webhook/egress"
)

// allowing is the --webhook-allow flag of commands that save webhook URLs or send to them.
type allowing struct {
	WebhookAllow prefixes `name:"webhook-allow" placeholder:"CIDR" help:"Address range that webhooks may use although it isn't public, such as 10.0.0.0/8; repeatable."`
}

// policy returns what the flag allows.
func (a *allowing) policy() (*egress.Policy, error) {
	policy, err := egress.New(&egress.Options{Allow: a.WebhookAllow})
	if err != nil {
		return nil, usageError{fmt.Errorf("--webhook-allow: %w", err)}
	}
	return policy, nil
}

// checkURL returns the check of a webhook's URL. Its errors name the violated rule, but no package and no address.
func checkURL(policy *egress.Policy) func(ctx context.Context, url string) error {
	return func(ctx context.Context, url string) error {
		err := policy.CheckURL(ctx, url)
		if errors.Is(err, egress.ErrRefused) {
			rule := strings.TrimPrefix(err.Error(), egress.ErrRefused.Error()+": ")
			return fmt.Errorf("is not allowed: %s", rule)
		}
		return err
	}
}

// prefixes is a list of address ranges.
type prefixes []netip.Prefix

// UnmarshalText reads comma-separated ranges.
func (p *prefixes) UnmarshalText(text []byte) error {
	for s := range strings.SplitSeq(string(text), ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("%q is not an address range such as 10.0.0.0/8", s)
		}
		*p = append(*p, prefix.Masked())
	}
	return nil
}

// String lists the ranges.
func (p prefixes) String() string {
	return strings.Join(mapped(p, netip.Prefix.String), ", ")
}
