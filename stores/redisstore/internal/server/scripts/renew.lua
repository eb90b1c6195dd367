local token, heldUntil, lease, deleteAfter, keep = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
-- Of the round that has the lock by the other servers of a quorum. This row may
-- be of an earlier one, and its lease may have ended here.
local claimStamp = ARGV[6]
local leastFence = tonumber(ARGV[7])

local row = redis.call('HMGET', key, 'rowFormat', 'ownerToken', 'heldUntil', 'leaseEnd', 'fence', 'stamp')
local format, owner, oldUntil, leaseEnd, fence = row[1], row[2], row[3], tonumber(row[4] or ''), tonumber(row[5] or '')
if format or token == '' or owner ~= token or earlier(heldUntil, oldUntil) or (claimStamp == '' and now > leaseEnd) then
  return answer(0, '', '')
end
-- A copy of the last renewal must not extend the lease again.
if heldUntil ~= oldUntil then
  leaseEnd = math.max(leaseEnd, now + lease)
end
-- A server whose memory is full refuses HSET as the first write of a script,
-- but not after another one.
keepFor(keep)
if claimStamp ~= '' then
  redis.call('HSET', key, 'claimStamp', claimStamp)
  if earlier(row[6], claimStamp) then
    redis.call('HSET', key, 'stamp', claimStamp)
  end
end
if leastFence > 0 and fence < leastFence then
  redis.call('HSET', key, 'fence', micros(leastFence))
end
redis.call('HSET', key, 'heldUntil', heldUntil, 'leaseEnd', micros(leaseEnd), 'deleteAfter', deleteAfter)
return answer(1, '', '')
