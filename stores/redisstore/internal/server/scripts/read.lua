return answer(0, '', ARGV[1])
