package lock

// Kill ends the work without a request, as the death of its process does.
func (l *Lock) Kill() {
	if l.beginEnd(released) {
		l.endWork()
		<-l.end.busy
	}
}
