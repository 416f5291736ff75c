package formsvc

import "testing"

// The sum of the sizes stays within the limit, also when values are replaced and dropped.
func TestBoundedMapCountsSizes(t *testing.T) {
	m := newBoundedMap[int, []byte](100)
	for i, size := range []int{40, 40, 20, 90, 10, 5, 50, 50, 1, 100, 0, 7} {
		m.drop(i % 4)
		m.put(i%4, make([]byte, size), size)
		sum := 0
		for _, v := range m.lru.Values() {
			sum += len(v.value)
		}
		if sum != m.used || m.used > 100 {
			t.Fatalf("after %d values: %d bytes, counted %d of 100", i+1, sum, m.used)
		}
		if v, ok := m.get(i % 4); !ok || len(v) != size {
			t.Errorf("value %d: %d bytes, %v", i, len(v), ok)
		}
	}
	m.clear()
	if m.used != 0 {
		t.Errorf("%d bytes after clear", m.used)
	}
	few := newBoundedMap[int, string](2)
	few.put(0, "x", 1)
	for range 3 {
		few.put(1, "y", 1)
	}
	if x, ok := few.get(0); x != "x" || !ok {
		t.Errorf("%v", few.lru.Keys())
	}
	few.put(2, "z", 1)
	if _, ok := few.get(1); ok || few.lru.Len() != 2 { // 0 was used later
		t.Errorf("%v", few.lru.Keys())
	}
}
