// Package thirdparty tests package webhook with what is not of the standard
// library: databases, the library of Standard Webhooks, generated sequences of
// calls.
//
// The tests are not beside package webhook, because "go mod tidy" of whoever
// imports a package also fetches what the tests of that package need.
package thirdparty
