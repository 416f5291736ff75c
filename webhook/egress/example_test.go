package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/formsvc/toolkit/webhook/egress"
)

// A client that reaches public addresses only.
func Example() {
	policy, err := egress.New(nil)
	if err != nil {
		panic(err)
	}
	dialer := &net.Dialer{Control: policy.Control}
	client := &http.Client{Transport: &http.Transport{
		Proxy:       nil, // a proxy would be all that Control sees
		DialContext: dialer.DialContext,
	}}

	_, err = client.Post("http://127.0.0.1:8080/hook", "application/json", strings.NewReader("{}"))
	fmt.Println(errors.Is(err, egress.ErrRefused))
	// Output: true
}

// The same policy checks URLs before a webhook is saved.
func ExamplePolicy_CheckURL() {
	policy, err := egress.New(nil)
	if err != nil {
		panic(err)
	}
	for _, url := range []string{
		"https://93.184.216.34/hook",
		"http://169.254.169.254/latest/meta-data/",
		"http://0x7f.1/hook",
		"http://93.184.216.34:25/",
		"ftp://receiver.example/",
	} {
		fmt.Println(policy.CheckURL(context.Background(), url))
	}
	// Output:
	// <nil>
	// egress: destination refused: the address is not public
	// egress: destination refused: the host ends in a number, but is not four decimal numbers without leading zeros
	// egress: destination refused: the port is not 80, 443 or at least 1024
	// egress: destination refused: the scheme is not http or https
}

// Allow a range of your own network, for receivers that run there.
func ExampleOptions() {
	policy, err := egress.New(&egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}})
	if err != nil {
		panic(err)
	}
	fmt.Println(policy.CheckURL(context.Background(), "http://10.20.0.7:81/hook"))
	fmt.Println(policy.CheckURL(context.Background(), "http://10.21.0.7:8080/hook"))
	// Output:
	// <nil>
	// egress: destination refused: the address is not public
}
