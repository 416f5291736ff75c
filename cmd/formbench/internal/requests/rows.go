package requests

import "github.com/formsvc/toolkit/cmd/formbench/internal/stats"

// A Subject is what the cells of all rounds have in common.
type Subject struct {
	What      string `json:"what"`
	Store     string `json:"store"`
	Conns     int    `json:"conns"`
	Responses int    `json:"responses"`
}

func (c *Cell) subject() Subject {
	return Subject{What: c.What, Store: c.Store, Conns: c.Conns, Responses: c.Responses}
}

// Rows are the cells of requests.
type Rows struct{ stats.Grouping[RowKey, Cell] }

type RowKey struct {
	Subject
	System string
}

func NewRows(cells []Cell) Rows {
	return Rows{stats.Group(cells, func(c *Cell) RowKey { return RowKey{c.subject(), c.System} })}
}
