package formsvc

import "sync"

// A boundedMap caches values by key. When it is full, it drops all of them. Create it with
// newBoundedMap; the zero value isn't usable. It is safe for concurrent use.
type boundedMap[K comparable, V any] struct {
	mu   sync.RWMutex
	most int
	used int // at least the sizes of the values in m
	m    map[K]V
}

// newBoundedMap returns a map for values whose sizes are at most that much together.
func newBoundedMap[K comparable, V any](most int) *boundedMap[K, V] {
	return &boundedMap[K, V]{most: most, m: make(map[K]V)}
}

func (b *boundedMap[K, V]) get(key K) (V, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	value, ok := b.m[key]
	return value, ok
}

// put adds a value, or replaces one of the same size.
func (b *boundedMap[K, V]) put(key K, value V, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.m[key]; !known {
		if b.used+size > b.most {
			b.m, b.used = make(map[K]V), 0
		}
		b.used += size
	}
	b.m[key] = value
}

// drop removes a value. What it took is free again when the map is full.
func (b *boundedMap[K, V]) drop(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, key)
}

// clear removes all values and returns them.
func (b *boundedMap[K, V]) clear() map[K]V {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.m
	b.m, b.used = make(map[K]V), 0
	return m
}
