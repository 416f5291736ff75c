// Package thirdparty tests package webhook with dependencies outside the standard library:
// databases, the library of Standard Webhooks, and generated sequences of calls.
//
// The tests aren't in package webhook, because "go mod tidy" in a module that imports it would also
// fetch the dependencies of its tests.
package thirdparty
