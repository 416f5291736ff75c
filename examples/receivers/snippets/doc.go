// Package snippets has a function for pasting in each of five languages, which
// checks the header x-service-signature. Beside each is a program that holds it to
// the golden vectors; the test runs these, and holds the guide for receivers to
// showing the functions as they are here.
package snippets
