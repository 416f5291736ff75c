package formsvc

import "sync"

// A boundedMap caches values by key. When it is full, it drops all of them. Create it with
// newBoundedMap; the zero value isn't usable. It is safe for concurrent use.
type boundedMap[K comparable, V any] struct {
	mu   sync.RWMutex
	most int
	size func(V) int
	used int
	m    map[K]V
}

// newBoundedMap returns a map for values whose sizes are at most that much together.
func newBoundedMap[K comparable, V any](most int, size func(V) int) *boundedMap[K, V] {
	return &boundedMap[K, V]{most: most, size: size, m: make(map[K]V)}
}

// one is the size of a value in a map that limits their number.
func one[V any](V) int { return 1 }

func (b *boundedMap[K, V]) get(key K) (V, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	value, ok := b.m[key]
	return value, ok
}

func (b *boundedMap[K, V]) put(key K, value V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(key)
	size := b.size(value)
	if b.used+size > b.most {
		b.empty()
	}
	b.m[key] = value
	b.used += size
}

func (b *boundedMap[K, V]) drop(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(key)
}

func (b *boundedMap[K, V]) remove(key K) {
	if old, ok := b.m[key]; ok {
		b.used -= b.size(old)
		delete(b.m, key)
	}
}

// clear removes all values and returns them.
func (b *boundedMap[K, V]) clear() map[K]V {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.m
	b.empty()
	return m
}

func (b *boundedMap[K, V]) empty() {
	b.m = make(map[K]V)
	b.used = 0
}
