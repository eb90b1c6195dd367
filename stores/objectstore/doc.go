// Package objectstore keeps locks in a service that stores objects and can make
// a write conditional: one object per name, which is read, judged, and written
// if it has not changed. Packages s3store and azblobstore use it. For another
// service, implement [Objects].
//
// # The object
//
// The key is the name, percent-encoded (see [Key]). The body is JSON:
//
//	field        present       meaning
//	name         always        the lock name
//	fence        always        fencing token: microseconds since 1970, rises with every acquisition
//	fenceBefore  from 2nd on   the fence before that: tells whose completion the memory is
//	stamp        always        orders claims: when the last owner acquired, or a later claim was abandoned
//	ownerToken   while held    token of the acquisition that holds the name
//	heldUntil    while held    end of the lease by the owner's clock
//	lease        while held    how long the lease lasts from the write that began it
//	leasedAt     after others  when the lease began, by the service's clock, if others wrote the object since
//	holder       while held    who holds it: function, request id, log stream
//	event        while held    the event being worked on, if the key has one
//	payload      while held    digest of its payload, if the key has one
//	completed    with events   completed events in the order of completion, and when each is forgotten
//	highestOrder with orders   highest completed order
//	resultBody   with Replay   result of resultEvent (base64)
//	resultEvent  with Replay
//	deleteAfter  always        until when the row must be kept, for those who delete objects
//	writes       always        how often the object was written: no two writes have the same bytes
//	rowFormat    never yet     reserved: rows that have it are refused, so that a later format can lock this one out
//
// Two writes with the same bytes might have the same version, for example an
// ETag that is a digest. A late copy of the first write would then be applied
// once more.
//
// # The rule
//
// A request reads the object, decides with [driver.Row.Judge], and writes the
// new row under the condition that the object still has the version that was
// read. If it has not, the request begins again. After a few rounds it fails
// with a conflict, which package lock repeats. Because of the condition, a
// late copy of a write finds another version and is refused (F3, F44).
//
// The read is left out where it would probably tell nothing new. A process
// remembers the rows that it has read or written last, and uses those that
// nobody held, or the request's own token. For a name that it does not
// remember, it first tries to create the object if the previous such name had
// none; otherwise it reads first. What is remembered or guessed can only save a
// request: the condition decides about each write, and only a row that was just
// read refuses a request.
//
// An object is never deleted, because its fence and stamp would be lost.
//
// # The clock
//
// A lease is judged by the service's clock. It begins when the write is
// applied, at the object's time of modification, and lasts for as long as the
// claim says. A reader compares with the time of the same answer. Both times
// may be whole seconds, so the lease lasts one second longer than that: a name
// is never taken over before the lease has ended, and can be taken over at the
// latest two seconds after. Renewing a lease never moves its end nearer, even
// if the renewal is for a shorter time.
//
// A claim that is abandoned writes the object of another owner, which changes
// its time of modification. So that write keeps the time at which the lease
// began, in leasedAt. A copy of a claim or a renewal that was applied already
// writes nothing, because it would begin the lease anew (F3).
package objectstore
