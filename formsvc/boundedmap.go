package formsvc

import "sync"

// A boundedMap remembers values by key. One that is full forgets all of them: what it
// has can be read again. Its zero value is not ready; see newBoundedMap. It is safe for
// concurrent use.
type boundedMap[K comparable, V any] struct {
	mu   sync.RWMutex
	most int
	m    map[K]V
}

func newBoundedMap[K comparable, V any](most int) *boundedMap[K, V] {
	return &boundedMap[K, V]{most: most, m: make(map[K]V)}
}

func (b *boundedMap[K, V]) get(key K) (V, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	value, ok := b.m[key]
	return value, ok
}

func (b *boundedMap[K, V]) put(key K, value V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.m[key]; !known && len(b.m) >= b.most {
		b.m = make(map[K]V)
	}
	b.m[key] = value
}

func (b *boundedMap[K, V]) drop(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, key)
}

// clear forgets all values, and returns them.
func (b *boundedMap[K, V]) clear() map[K]V {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.m
	b.m = make(map[K]V)
	return m
}
