-- The answer is 1 if the token owned the row and has released it, if only for a
-- cooldown, and 2 more if the stamp was raised. A completion that is too late records nothing and does
-- not count as a release, but it frees the row, so that no late renewal brings
-- the lease back.
local token, stamp, deleteAfter, keep = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local condition = ARGV[5] -- see server.go
local cooldown, heldUntil, lease = ARGV[6], ARGV[7], tonumber(ARGV[8])
local marksBelow = tonumber(ARGV[9])
local memory = 10 -- where it begins

local row = redis.call('HMGET', key, 'rowFormat', 'ownerToken', 'stamp', 'deleteAfter', 'claimStamp', 'leaseEnd', 'marks', 'memoryStamp', 'takenFrom')
local format, owner, oldStamp, oldDeleteAfter = row[1], row[2], row[3], row[4]
local own, late = token ~= '' and owner == token, false
if condition == 'takes' then
  own = (not owner or now > tonumber(row[6])) and not earlier(stamp, row[8] or '')
elseif own and (condition == 'same round' or condition == 'clears') then
  own = not earlier(stamp, row[5])
elseif own and condition == 'in time' and ARGV[memory] then
  late = now > tonumber(row[6])
end
local marks = tonumber(row[7] or '0')
if own and marksBelow > 0 and (marks < 0 or marks >= marksBelow) then
  own = false
end
-- After a claim that was given up, the next one takes over from the same owner. The
-- end of a lock, also of one that this row has not seen, says that it has ended.
if row[9] and condition ~= 'same round' and not format then
  redis.call('HDEL', key, 'takenFrom')
end
local raise = stamp ~= '' and (not oldStamp or earlier(oldStamp, stamp))
if format or (not own and not raise) then
  return answer(0, '', '')
end
local applied = 0
if own then
  applied = late and 0 or 1
  -- The first write only deletes, so that it is applied even if the server's
  -- memory is full.
  redis.call('HDEL', key, 'ownerToken', 'claimStamp', 'heldUntil', 'leaseEnd', 'holder', 'event', 'payload', 'takesMarks', 'interruptedFor', 'cooldown')
  if ARGV[memory] and not late then
    redis.call('HDEL', key, 'marks')
  end
  if condition == 'clears' then
    redis.call('HSET', key, 'cleared', token)
  end
  if cooldown ~= '' and not late then
    redis.call('HSET', key, 'ownerToken', cooldown, 'cooldown', token, 'heldUntil', heldUntil, 'leaseEnd', micros(now + lease))
  end
  if condition ~= '' and ARGV[memory] and not late then -- of the copies in a quorum, the latest counts
    redis.call('HSET', key, 'memoryStamp', condition ~= 'takes' and row[5] and earlier(stamp, row[5]) and row[5] or stamp)
  end
  for i = memory, late and 0 or #ARGV, 2 do
    if ARGV[i + 1] == '' then
      redis.call('HDEL', key, ARGV[i])
    else
      redis.call('HSET', key, ARGV[i], ARGV[i + 1])
    end
  end
end
if raise then
  applied = applied + 2
  redis.call('HSET', key, 'stamp', stamp)
end
-- Whoever does not own the row must not shorten its life.
if own or not oldDeleteAfter or earlier(oldDeleteAfter, deleteAfter) then
  redis.call('HSET', key, 'deleteAfter', deleteAfter)
  keepFor(keep)
end
return answer(applied, '', '')
