local token, stamp, closes = ARGV[1], ARGV[2], ARGV[3] == '1'

local row = redis.call('HMGET', key, 'rowFormat', 'ownerToken', 'stamp', 'marks')
local marks = tonumber(row[4] or '0')
if row[1] or token == '' or row[2] ~= token or (marks < 0 and not closes) then
  return answer(0, '', '')
end
redis.call('HSET', key, 'marks', closes and '-1' or micros(marks + 1))
if not closes and earlier(row[3], stamp) then
  redis.call('HSET', key, 'stamp', stamp)
end
return answer(1, '', '')
