# gnuplot scores.gp draws scores.svg, scores-dark.svg and scores.png from scores.dat
set encoding utf8
DATA = 'scores.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 1800,760 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'scores.png'
    } else {
        set terminal svg noenhanced size 900,380 font 'sans-serif,13' background rgb paper
        set output dark ? 'scores-dark.svg' : 'scores.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set ylabel 'reward per step' textcolor rgb ink
    set yrange [0:0.09]
    set key outside top center horizontal
    set grid ytics lc rgb line
    set xrange [-0.6:3.6]
    set boxwidth 0.122667 absolute
    set xtics scale 0 ('train' 0, 'swap-digits' 1, 'reversed-dial' 2, 'left-dial-broken' 3)
    plot DATA index 0 using 1:2 with boxes fs solid 0.55 lc rgb 0x0072b2 title 'dqn', \
         '' index 1 using 1:2 with points pt 7 ps 0.35 lc rgb ink notitle, \
         '' index 2 using 1:2 with boxes fs solid 0.55 lc rgb 0xe69f00 title 'pretrained', \
         '' index 3 using 1:2 with points pt 7 ps 0.35 lc rgb ink notitle, \
         '' index 4 using 1:2 with boxes fs solid 0.55 lc rgb 0x009e73 title 'reward-predictive', \
         '' index 5 using 1:2 with points pt 7 ps 0.35 lc rgb ink notitle, \
         '' index 6 using 1:2 with boxes fs solid 0.55 lc rgb 0xcc79a7 title 'planner', \
         '' index 7 using 1:2 with points pt 7 ps 0.35 lc rgb ink notitle, \
         '' index 8 using 1:2 with boxes fs solid 0.55 lc rgb 0x56b4e9 title 'tabular', \
         '' index 9 using 1:2 with points pt 7 ps 0.35 lc rgb ink notitle, \
         '' index 10 using 1:2 with boxes fs solid 0.55 lc rgb 0xd55e00 title 'random', \
         '' index 11 using 1:2 with points pt 7 ps 0.35 lc rgb ink notitle, \
         '' index 12 using 1:2 with lines dt 2 lw 1.5 lc rgb ink title 'optimum'
    unset output
}
