// A module of its own: the check is no part of the toolkit.
module github.com/formsvc/toolkit/prose

go 1.26.0
