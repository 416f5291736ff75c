package formsvc

import "sync"

// A boundedMap caches values by key. When it is full, it drops all of them. Create it with
// newBoundedMap; the zero value isn't usable. It is safe for concurrent use.
type boundedMap[K comparable, V any] struct {
	mu   sync.RWMutex
	most int
	used int // the sizes of the values in m
	m    map[K]sized[V]
}

type sized[V any] struct {
	value V
	size  int
}

// newBoundedMap returns a map for values whose sizes are at most that much together.
func newBoundedMap[K comparable, V any](most int) *boundedMap[K, V] {
	return &boundedMap[K, V]{most: most, m: make(map[K]sized[V])}
}

func (b *boundedMap[K, V]) get(key K) (V, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	kept, ok := b.m[key]
	return kept.value, ok
}

// put adds or replaces a value.
func (b *boundedMap[K, V]) put(key K, value V, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += size - b.m[key].size
	if b.used > b.most {
		b.m, b.used = make(map[K]sized[V]), size
	}
	b.m[key] = sized[V]{value, size}
}

// drop removes a value.
func (b *boundedMap[K, V]) drop(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= b.m[key].size
	delete(b.m, key)
}

// clear removes all values and returns them.
func (b *boundedMap[K, V]) clear() []V {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []V
	for _, kept := range b.m {
		list = append(list, kept.value)
	}
	b.m, b.used = make(map[K]sized[V]), 0
	return list
}
