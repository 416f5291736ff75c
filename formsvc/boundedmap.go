package formsvc

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// A boundedMap caches values by key, as many of those that were used last as its limit allows. Create it with
// newBoundedMap; the zero value isn't usable. It is safe for concurrent use.
type boundedMap[K comparable, V any] struct {
	mu   sync.Mutex
	most int
	used int // the sizes of the values in lru
	lru  *simplelru.LRU[K, sized[V]]
}

type sized[V any] struct {
	value V
	size  int
}

// newBoundedMap returns a map for values whose sizes are at most that much together.
func newBoundedMap[K comparable, V any](most int) *boundedMap[K, V] {
	b := &boundedMap[K, V]{most: most}
	b.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ K, gone sized[V]) { b.used -= gone.size }) // fails only without a size
	return b
}

func (b *boundedMap[K, V]) get(key K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept, ok := b.lru.Get(key)
	return kept.value, ok
}

// put adds or replaces a value.
func (b *boundedMap[K, V]) put(key K, value V, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lru.Remove(key) // replaced values aren't reported
	b.lru.Add(key, sized[V]{value, size})
	for b.used += size; b.used > b.most; {
		b.lru.RemoveOldest()
	}
}

// drop removes a value.
func (b *boundedMap[K, V]) drop(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lru.Remove(key)
}

// clear removes all values and returns them, the oldest first.
func (b *boundedMap[K, V]) clear() []V {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []V
	for _, kept := range b.lru.Values() {
		list = append(list, kept.value)
	}
	b.lru.Purge()
	return list
}
