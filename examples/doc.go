// Package examples has no code of its own: its directories are programs, each under 80
// lines and each a test too, and README.md is the guide that shows them. The tests here
// hold the guide to the programs, and the programs to what they may link.
package examples
