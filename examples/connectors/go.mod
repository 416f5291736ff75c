// There is no Go here. A module of its own keeps the lock files of npm out of what programs download that import the library,
// and Go files that npm installs out of its packages.
module github.com/formsvc/toolkit/examples/connectors

go 1.26.0
