-- A denial in another script may come after a write, so a check asks for the
-- commands that it does not run itself. Some servers cannot tell.
for _, command in ipairs({ 'hmget', 'hset', 'hdel', 'pexpireat' }) do
  local told, allowed = pcall(redis.acl_check_cmd, command, key, '0', '0')
  if told and not allowed then
    return redis.error_reply("NOPERM the user has no permissions to run the '" .. command .. "' command")
  end
end
return answer(0, '', ARGV[1])
