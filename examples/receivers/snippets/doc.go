// Package snippets has a function in each of five languages that checks the header x-service-signature. Beside each is a
// program that checks it against the golden vectors. The test runs these programs, and checks that the guide for receivers
// shows the same functions.
package snippets
