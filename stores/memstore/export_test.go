package memstore

// MakeNewer makes the row of a name look as if a later version had written it.
func (s *Store) MakeNewer(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row(name).Newer = true
}

// Len is the number of rows.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}
