# gnuplot curves-reversed-dial.gp draws curves-reversed-dial.svg, curves-reversed-dial-dark.svg and curves-reversed-dial.png from curves-reversed-dial.dat
set encoding utf8
DATA = 'curves-reversed-dial.dat'
do for [look in 'light dark png'] {
    reset
    dark = look eq 'dark'
    ink = dark ? '#e6e9ec' : '#1b1f24'
    muted = dark ? '#a4adb6' : '#57606a'
    line = dark ? '#3a424a' : '#d0d7de'
    paper = dark ? '#14171a' : '#ffffff'
    accent = dark ? '#56b4e9' : '#0072b2'
    if (look eq 'png') {
        set terminal pngcairo noenhanced size 1120,720 font 'sans,12' fontscale 2 linewidth 2 pointscale 2 background rgb paper
        set output 'curves-reversed-dial.png'
    } else {
        set terminal svg noenhanced size 560,360 font 'sans-serif,13' background rgb paper
        set output dark ? 'curves-reversed-dial-dark.svg' : 'curves-reversed-dial.svg'
    }
    set border 3 lc rgb muted
    set tics nomirror textcolor rgb ink
    set key textcolor rgb ink
    set style fill solid noborder
    set xlabel 'episode' textcolor rgb ink
    set ylabel 'reward per step' textcolor rgb ink
    set yrange [0:0.0830769231]
    set xrange [1:100]
    set key outside top center horizontal
    set grid ytics lc rgb line
    plot DATA index 0 using 1:3:4 with filledcurves fs transparent solid 0.2 lc rgb 0x0072b2 notitle, \
         '' index 0 using 1:6:7 with filledcurves fs transparent solid 0.2 lc rgb 0xe69f00 notitle, \
         '' index 0 using 1:9:10 with filledcurves fs transparent solid 0.2 lc rgb 0x009e73 notitle, \
         '' index 0 using 1:12:13 with filledcurves fs transparent solid 0.2 lc rgb 0xcc79a7 notitle, \
         '' index 0 using 1:2 with lines lw 2 lc rgb 0x0072b2 title 'dqn', \
         '' index 0 using 1:5 with lines lw 2 lc rgb 0xe69f00 title 'pretrained', \
         '' index 0 using 1:8 with lines lw 2 lc rgb 0x009e73 title 'reward-predictive', \
         '' index 0 using 1:11 with lines lw 2 lc rgb 0xcc79a7 title 'planner', \
         '' index 1 using 1:2 with lines dt 2 lw 1.5 lc rgb ink title 'optimum'
    unset output
}
