package main

import "github.com/formsvc/toolkit/cmd/formbench/internal/stats"

// A subject is what the cells of all rounds have in common.
type subject struct {
	What      string `json:"what"`
	Store     string `json:"store"`
	Conns     int    `json:"conns"`
	Responses int    `json:"responses"`
}

func (c *cell) subject() subject {
	return subject{What: c.What, Store: c.Store, Conns: c.Conns, Responses: c.Responses}
}

// rows are the cells of requests.
type rows struct{ stats.Grouping[rowKey, cell] }

type rowKey struct {
	subject
	system string
}

func newRows(cells []cell) rows {
	return rows{stats.Group(cells, func(c *cell) rowKey { return rowKey{c.subject(), c.System} })}
}
