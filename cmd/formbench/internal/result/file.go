package result

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// A Writer writes cells in the format of Go benchmarks, each as soon as it is measured.
type Writer struct {
	out *benchfmt.Writer
	// Config is the origin of the figures.
	config []benchfmt.Config
}

// NewWriter returns a writer that begins with the origin of the figures: keys and values in turn.
func NewWriter(w io.Writer, from ...string) *Writer {
	out := &Writer{out: benchfmt.NewWriter(w)}
	for i := 0; i+1 < len(from); i += 2 {
		out.config = append(out.config, benchfmt.Config{Key: from[i], Value: []byte(from[i+1]), File: true})
	}
	return out
}

// Write writes a cell.
func (w *Writer) Write(c *Cell) error {
	r := &benchfmt.Result{Config: w.config, Name: benchfmt.Name(c.name()), Iters: 1}
	for _, f := range c.Figures {
		r.Values = append(r.Values, benchfmt.Value{Value: f.Value, Unit: f.Unit})
	}
	return w.out.Write(r)
}

// name returns the name of the benchmark. Spaces and slashes in it are escaped.
func (c *Cell) name() string {
	name := strings.ToUpper(c.Part[:1]) + c.Part[1:]
	for _, x := range []struct{ key, value string }{
		{"what", c.What}, {"store", c.Store}, {"conns", number(c.Conns)}, {"size", number(c.Size)}, {"system", c.System},
	} {
		if x.value != "" {
			name += "/" + x.key + "=" + url.QueryEscape(x.value)
		}
	}
	return name
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Read reads written cells and their origin. The cells of a key are its rounds, in their order.
func Read(r io.Reader, file string) (cells Cells, from string, err error) {
	rounds := make(map[Key]int)
	var origins []string
	for reader := benchfmt.NewReader(r, file); ; {
		if !reader.Scan() {
			if err = reader.Err(); err == nil && len(cells) == 0 {
				err = errors.New(file + " has no benchmarks")
			}
			return cells, strings.Join(origins, ", "), err
		}
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, "", record
		case *benchfmt.Result:
			c, err := newCell(record)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w", file, err)
			}
			rounds[c.Key]++
			c.Round = rounds[c.Key]
			cells = append(cells, c)
			origins = origins[:0]
			for _, config := range record.Config {
				if config.File {
					origins = append(origins, string(config.Value))
				}
			}
		}
	}
}

func newCell(r *benchfmt.Result) (c Cell, err error) {
	parts := strings.Split(r.Name.String(), "/")
	c.Part = strings.ToLower(parts[0])
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		if value, err = url.QueryUnescape(value); err != nil {
			return c, err
		}
		switch key {
		case "what":
			c.What = value
		case "store":
			c.Store = value
		case "system":
			c.System = value
		case "conns":
			c.Conns, err = strconv.Atoi(value)
		case "size":
			c.Size, err = strconv.Atoi(value)
		}
		if err != nil {
			return c, err
		}
	}
	for _, v := range r.Values {
		if v.OrigUnit != "" { // megabytes became bytes
			v.Unit, v.Value = v.OrigUnit, v.OrigValue
		}
		c.Add(v.Unit, v.Value)
	}
	return c, nil
}
