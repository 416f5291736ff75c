package stats

// A Grouping is the cells of all rounds, by what they have in common. The order
// is that of the first round.
type Grouping[K comparable, C any] struct {
	Keys  []K
	Cells map[K][]C
}

// Group groups cells by their keys.
func Group[K comparable, C any](cells []C, keyOf func(*C) K) Grouping[K, C] {
	g := Grouping[K, C]{Cells: make(map[K][]C)}
	for i := range cells {
		key := keyOf(&cells[i])
		if g.Cells[key] == nil {
			g.Keys = append(g.Keys, key)
		}
		g.Cells[key] = append(g.Cells[key], cells[i])
	}
	return g
}

// Spread returns the spread of a figure of a row, or nil when it was not
// measured.
func (g *Grouping[K, C]) Spread(key K, figure func(*C) float64) *Spread {
	cells := g.Cells[key]
	if len(cells) == 0 {
		return nil
	}
	s := NewSpread(Mapped(cells, figure))
	return &s
}

// Over returns one figure over another, round by round, or nil.
func (g *Grouping[K, C]) Over(a, b K, round func(*C) int, figure func(*C) float64) *Spread {
	var list []float64
	for _, x := range g.Cells[a] {
		for _, y := range g.Cells[b] {
			if below := figure(&y); round(&x) == round(&y) && below > 0 {
				list = append(list, figure(&x)/below)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	s := NewSpread(list)
	return &s
}

// Mapped returns what f makes of each element.
func Mapped[T, R any](list []T, f func(*T) R) []R {
	out := make([]R, len(list))
	for i := range list {
		out[i] = f(&list[i])
	}
	return out
}
